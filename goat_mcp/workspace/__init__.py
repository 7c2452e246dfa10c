"""The directories file tools may touch, and the only door to paths in them."""

from goat_mcp.workspace.files import Files
from goat_mcp.workspace.opened import AnyVersion, FileVersion, OpenedDirectory, OpenedFile
from goat_mcp.workspace.roots import WorkspacePath
from goat_mcp.workspace.workspace import Workspace
from goat_mcp.workspace.writing import WrittenFile

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
