"""What libvirt's daemon says in its log of the calls that it was asked for."""

from __future__ import annotations

import re

CALL = re.compile(r"debug : (vir(?:Domain|Connect|Network|Storage|Node|Secret|Interface)\w+):\d+ : ")
"""A call in the log under the filter ``1:libvirt``."""

READING = {"virConnectGetAllDomainStats", "virDomainGetXMLDesc", "virDomainFree", "virDomainRef"}
READING |= {"virConnectClose", "virConnectOpen", "virConnectOpenReadOnly", "virConnectOpenAuth", "virConnectRef"}
READING |= {"virConnectOpenInternal", "virConnectIsAlive", "virConnectGetLibVersion", "virConnectGetType"}
READING |= {"virConnectSupportsFeature"}
"""All that the recorder may cause."""
