"""The policies that come with flmarket, one module each: ``d_first.py`` is ``d-first``.

``__all__`` of a module names its class. A module that is added here is found by itself.
"""
