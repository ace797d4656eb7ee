"""Makes the lab's bridge, tells what it is like, removes it and tells again."""

import json
import sys
from typing import Any

from pyroute2 import IPRoute

from vmlab.hypervisor.lab_network import make_bridge, remove_bridge
from vmlab.model.names import BRIDGE


def described() -> dict[str, Any]:
    """Links, the host's address, the bridge's spanning tree, and the default routes."""
    with IPRoute() as route:
        links = {link.get_attr("IFLA_IFNAME"): link for link in route.get_links()}
        said: dict[str, Any] = {
            "links": sorted(links),
            "default_routes": len(route.get_default_routes()),
            "loopback_up": links["lo"]["flags"] & 1,
        }
        if BRIDGE in links:
            index = links[BRIDGE]["index"]
            (address,) = route.get_addr(index=index, family=2)
            said["address"] = f"{address.get_attr('IFA_ADDRESS')}/{address['prefixlen']}"
            bridge = links[BRIDGE].get_attr("IFLA_LINKINFO").get_attr("IFLA_INFO_DATA")
            said["stp"] = bridge.get_attr("IFLA_BR_STP_STATE")
            said["up"] = links[BRIDGE]["flags"] & 1
    return said


if __name__ == "__main__":
    make_bridge()
    during = described()
    remove_bridge()
    remove_bridge()
    sys.stdout.write(json.dumps({"during": during, "after": described()}))
