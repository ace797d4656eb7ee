"""Lists, tables and cards."""
