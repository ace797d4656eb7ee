"""Small widgets that draw what they are given and own nothing."""
