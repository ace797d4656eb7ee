"""Whether files are unchanged: digests by chunk, sealed manifests, reading without the page cache."""

from vmlab.integrity.digests import FileDigests, describe
from vmlab.integrity.disk_reading import Findings, verify
from vmlab.integrity.sealed import seal, unseal

__all__ = ["FileDigests", "Findings", "describe", "seal", "unseal", "verify"]
