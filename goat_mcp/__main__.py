"""`python -m goat_mcp` is `goat-mcp`."""

from goat_mcp_launch import main

if __name__ == "__main__":
    main()
