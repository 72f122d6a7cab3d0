"""What runs came to: measures, reports, figures, exports, and checks of every constraint."""
