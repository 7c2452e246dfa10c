"""The resident process: it has imported everything, and forks a server for each host that starts one (design/0029).

`goat_mcp_launch`, which every start runs, is its client. Linux only.
"""
