"""The calls of Windows for job objects, by pywin32. There is nothing in this module on other systems."""

from __future__ import annotations

import sys

from goat_mcp.processes.windows_job import JobCalls, JobLimits, JobMember

if sys.platform == "win32":
    import ntpath
    from collections.abc import Generator
    from contextlib import contextmanager
    from typing import Any

    import psutil
    import pywintypes
    import win32api
    import win32con
    import win32job
    import win32process

    _calls: Any = win32job
    _processes: Any = win32process
    """Their stubs leave most parameters without a type."""

    @contextmanager
    def _os_errors() -> Generator[None]:
        try:
            yield
        except pywintypes.error as problem:
            raise OSError(None, problem.strerror, None, problem.winerror) from None
        except psutil.Error as problem:
            raise OSError(str(problem)) from None

    def _program_name(pid: int) -> str:
        try:
            process = win32api.OpenProcess(win32con.PROCESS_QUERY_INFORMATION | win32con.PROCESS_VM_READ, False, pid)
            try:
                return ntpath.basename(_processes.GetModuleFileNameEx(process, 0))
            finally:
                win32api.CloseHandle(process)
        except pywintypes.error:
            return ""

    class SystemCalls:
        """Those of Windows."""

        def create(self, limits: JobLimits) -> Any:
            with _os_errors():
                job = _calls.CreateJobObject(None, "")  # None: no child inherits the handle
                about: Any = _calls.QueryInformationJobObject(job, _calls.JobObjectExtendedLimitInformation)
                basic: Any = about["BasicLimitInformation"]
                basic["LimitFlags"] |= _calls.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
                if limits.max_memory_bytes:
                    basic["LimitFlags"] |= _calls.JOB_OBJECT_LIMIT_JOB_MEMORY
                    about["JobMemoryLimit"] = limits.max_memory_bytes
                if limits.max_processes:
                    basic["LimitFlags"] |= _calls.JOB_OBJECT_LIMIT_ACTIVE_PROCESS
                    basic["ActiveProcessLimit"] = limits.max_processes
                _calls.SetInformationJobObject(job, _calls.JobObjectExtendedLimitInformation, about)
                return job

        def assign(self, job: Any, pid: int) -> None:
            with _os_errors():
                access = win32con.PROCESS_SET_QUOTA | win32con.PROCESS_TERMINATE
                process = win32api.OpenProcess(access, False, pid)
                try:
                    _calls.AssignProcessToJobObject(job, process)
                finally:
                    win32api.CloseHandle(process)

        def resume(self, pid: int) -> None:
            with _os_errors():
                psutil.Process(pid).resume()

        def members(self, job: Any) -> list[JobMember]:
            with _os_errors():
                pids: list[int] = list(_calls.QueryInformationJobObject(job, _calls.JobObjectBasicProcessIdList))
            return [JobMember(pid, _program_name(pid)) for pid in pids]

        def terminate(self, job: Any) -> None:
            with _os_errors():
                _calls.TerminateJobObject(job, 1)

        def close(self, job: Any) -> None:
            with _os_errors():
                win32api.CloseHandle(job)


def system_calls() -> JobCalls:
    """Raises `OSError` if this system has no job objects."""
    if sys.platform != "win32":
        raise OSError("this system has no job objects")
    return SystemCalls()
