"""The command line, a module for each command; `fuzz.__main__` puts them together."""
