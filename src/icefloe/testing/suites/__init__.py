"""Behaviour suites: abstract pytest classes that an implementation inherits to prove that it keeps its promises."""
