"""A person who uses Gadget only over HTTP: they log in with a password, then call REST with the
session's cookie."""

from __future__ import annotations

import time
from typing import Any

import httpx2

from gadget_site.demo.names import PASSWORD

PATIENCE_S = 60.0
ENDED = {"succeeded", "failed", "cancelled"}


class Person:
    """A logged-in user of the demo."""

    def __init__(self, url: str, username: str) -> None:
        self._client = httpx2.Client(base_url=url, timeout=PATIENCE_S, trust_env=False)
        self._client.get("/login/").raise_for_status()
        form = {
            "username": username,
            "password": PASSWORD,
            "csrfmiddlewaretoken": self._client.cookies["csrftoken"],
        }
        response = self._client.post("/login/", data=form)
        assert response.status_code == 302, response.text

    def get(self, path: str) -> Any:
        response = self._client.get(f"/api{path}")
        assert response.status_code == 200, response.text
        return response.json()

    def post(self, path: str, body: dict[str, Any], status: int = 200) -> Any:
        headers = {"X-CSRFToken": self._client.cookies["csrftoken"]}
        response = self._client.post(f"/api{path}", json=body, headers=headers)
        assert response.status_code == status, response.text
        return response.json()

    def start_example(self, employee: str) -> str:
        """Start the first example task of the employee with this name; return the run's id."""
        found = next(each for each in self.get("/employees")["items"] if each["name"] == employee)
        task = {"employee_id": found["id"], "task": found["example_tasks"][0]}
        return str(self.post("/runs", task, status=201)["id"])

    def approve_until_the_end(self, run_id: str) -> tuple[Any, int]:
        """Approve every card of the run until it ends; return the run and the number of cards."""
        deadline, approved = time.monotonic() + PATIENCE_S, 0
        while (run := self.get(f"/runs/{run_id}"))["status"] not in ENDED:
            assert time.monotonic() < deadline, run
            for card in self.get(f"/approvals?status=pending&run_id={run_id}")["items"]:
                self.post(f"/approvals/{card['id']}/approve", {"digest": card["digest"]})
                approved += 1
            time.sleep(0.1)
        return run, approved
