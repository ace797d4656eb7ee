"""The console, in Textual."""
