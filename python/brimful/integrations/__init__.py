"""One module a framework, imported by its name alone: what serves native loaders there."""
