"""What the guests' services offer to a workload; the guest image is built accordingly."""

from __future__ import annotations

LAB_USER = "lab"
"""Owns the files of the share and receives the mail."""

LAB_PASSWORD = "lab-password"
"""Samba's password for `LAB_USER`; the lab's network has no way out, so it guards nothing."""

SHARE = "tree"
"""Samba's share."""

SHARE_FOLDER = "/srv/tree"
"""The folder behind `SHARE`."""

MAIL_DOMAIN = "vmlab.test"
"""Postfix delivers mail for `LAB_USER` here."""

MAILDIR = "/home/lab/Maildir"
"""Where that mail arrives, one file a message in ``new``."""

DATABASE = "sbtest"
"""PostgreSQL's database and the role that owns it; reachable from the lab's network without a password."""

ACCESS_LOG = "/var/log/apache2/access.log"
"""Apache's log in the ``combined`` format, whose size field counts bytes sent with headers."""
