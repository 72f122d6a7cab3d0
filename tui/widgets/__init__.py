"""The widgets of the screens, one to a file."""
