"""The console in a browser, for `vmlab serve` and `vmlab demo --serve`."""
