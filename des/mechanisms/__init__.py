"""The mechanisms that come with flmarket, one module each: ``fair_queue.py`` is ``fair-queue``.

``__all__`` of a module names its class. A module that is added here is found by itself.
"""
