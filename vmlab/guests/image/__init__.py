"""The guests' root disk, one for all roles: built from Debian's packages, stored under the digest of its recipe."""
