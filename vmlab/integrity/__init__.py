"""Whether files are unchanged: digests by chunk, sealed manifests, reading without the page cache; and long loops over
files, which can be stopped (`long_work`).
"""
