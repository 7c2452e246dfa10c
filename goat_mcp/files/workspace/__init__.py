"""The directories file tools may touch, and the only door to paths in them."""

from goat_mcp.files.workspace.opened_file import AnyVersion, FileVersion, OpenedDirectory, OpenedFile
from goat_mcp.files.workspace.roots import WorkspacePath
from goat_mcp.files.workspace.workspace import Files, Workspace
from goat_mcp.files.workspace.writing import WrittenFile

__all__ = [
    "AnyVersion",
    "FileVersion",
    "Files",
    "OpenedDirectory",
    "OpenedFile",
    "Workspace",
    "WorkspacePath",
    "WrittenFile",
]
