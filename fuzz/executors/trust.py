"""What a file wants to run that is not part of LitmusFuzz.

A finding and a campaign's folder name configurations, and a configuration may name a shared library
or a Python object. What a file names runs only if the command line names it too, or says
``--trust``.
"""

from __future__ import annotations

from litmusfuzz.fuzz.engines.settings import EngineSettings, Sort, UnknownEngine
from litmusfuzz.fuzz.executors.table import is_ours


def outside_code(executor: str, configuration: str) -> str:
    """The code outside LitmusFuzz that a configuration loads, in words; "" if there is none.

    Parameters
    ----------
    executor : str
        One of an entry point is code that the user has installed, and no such code.
    configuration : str
        Its name. Nothing is imported or opened to find out.
    """
    if "=" not in configuration:
        return ""
    if not is_ours(executor):
        return f"the configuration {configuration!r} of executor {executor!r}"
    engine = named_engine(configuration)
    try:
        sort = EngineSettings.sort_of(engine)
    except UnknownEngine:
        return ""  # the executor refuses it by name
    if sort is Sort.PYTHON:
        return f"the Python object {engine}"
    return f"the shared library {engine}" if sort is Sort.LIBRARY else ""


def named_engine(configuration: str) -> str:
    """The engine in a configuration's name, ``engine=NAME;threads=2``; "" if there is none."""
    fields = dict(part.partition("=")[::2] for part in configuration.split(";"))
    return fields.get("engine", "")
