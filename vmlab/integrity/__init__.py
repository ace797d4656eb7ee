"""Whether files are unchanged: digests by chunk, sealed manifests, reading without the page cache; and long loops over
files, which can be stopped (`long_work`).
"""

from vmlab.integrity.digests import FileDigests, describe, seal, unseal
from vmlab.integrity.disk_reading import Findings, verify
from vmlab.integrity.long_work import LongWork, pieces

__all__ = ["FileDigests", "Findings", "LongWork", "describe", "pieces", "seal", "unseal", "verify"]
