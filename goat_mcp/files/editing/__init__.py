"""How files are changed: who may, what is replaced, how the change is shown. Only two modules touch files."""
