"""The command line, a module for each command; `main` puts them together."""
