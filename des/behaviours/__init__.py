"""The client behaviours that come with flmarket, one module each: ``ring.py`` is ``ring``.

``__all__`` of a module names its class. A module that is added here is found by itself.
"""
