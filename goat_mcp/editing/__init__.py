"""How text is changed: finding what to replace, replacing it, and showing the change. Only `current_file` reads."""
