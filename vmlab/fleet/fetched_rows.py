"""What is new in the store of a host's own run, in rows that JSON can carry."""

from __future__ import annotations

import base64
from typing import Any

from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.event import Event
from vmlab.model.event_json import to_json
from vmlab.store.reader import NotBegunError, RunReader


class HostRows:
    """Reads one store again and again; its state is in the questions, so that another process goes on after a cut."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._reader: RunReader | None = None

    def after(self, events: int, samples: int, layouts: int, most: int) -> dict[str, Any]:
        """Up to `most` events and samples after these rows, and the layouts beyond `layouts` that they need.

        Raises StoreError.
        """
        # Checked before the store is read, so that a last event written in between is still found.
        alive = self._folder.alive()
        reader = self._opened()
        if reader is None:
            return {"events": [], "seen": events, "layouts": [], "samples": [], "alive": alive}
        found: list[tuple[int, Event]] = []
        for row, event in reader.events(events):
            found.append((row, event))
            if len(found) == most:
                break
        taken = []
        for one in reader.sample_rows(after=samples):
            taken.append(one)
            if len(taken) == most:
                break
        last = max((one.layout for one in taken), default=0)
        known = reader.sample_layouts() if last > layouts else {}
        new = [id for id in known if layouts < id <= last]
        return {
            "events": [{"row": row, "body": to_json(event)} for row, event in found],
            "seen": found[-1][0] if found else events,
            "layouts": [{"id": id, "names": known[id].names, "units": known[id].units} for id in new],
            "samples": [
                {
                    "row": one.id,
                    "layout": one.layout,
                    "wall": one.wall,
                    "mono": one.mono,
                    "body": base64.b64encode(one.body).decode(),
                }
                for one in taken
            ],
            "alive": alive or len(found) == most or len(taken) == most,
        }

    def _opened(self) -> RunReader | None:
        if self._reader is None:
            try:
                self._reader = RunReader(self._folder.store)
            except NotBegunError:
                return None
        return self._reader

    def close(self) -> None:
        """Close the store."""
        if self._reader is not None:
            self._reader.close()
