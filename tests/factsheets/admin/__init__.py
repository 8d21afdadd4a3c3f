"""Admin pages as a browser sees them: tags, text, and forms as they would be sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from django.http import HttpResponse

Attributes = dict[str, str]


@dataclass
class Form:
    """One form: where it goes, and what a browser would send from it."""

    attributes: Attributes
    data: dict[str, str] = field(default_factory=dict)


class Page(HTMLParser):
    """What stands on a page. Text in forms counts as text, for people read it there."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, Attributes]] = []
        self.forms: list[Form] = []
        self.scripts = ""
        self.text = ""
        self._open: list[Form] = []
        self._raw = ""
        self._textarea: str | None = None
        self._select: str | None = None
        self._written = ""
        self.feed(response.content.decode())
        self.close()

    def form(self, identifier: str) -> Form:
        """The form of that id."""
        return next(form for form in self.forms if form.attributes.get("id") == identifier)

    def form_to(self, address: str) -> Form:
        """The form that is sent to an address."""
        return next(form for form in self.forms if form.attributes.get("action") == address)

    def links(self) -> list[str]:
        """Where links lead."""
        return [attributes["href"] for tag, attributes in self.tags if "href" in attributes]

    def all(self, tag: str) -> list[Attributes]:
        """The attributes of every tag of a name."""
        return [attributes for name, attributes in self.tags if name == tag]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append((tag, found))
        if tag in {"script", "style"}:
            self._raw = tag
        elif tag == "form":
            self._open.append(Form(found))
            self.forms.append(self._open[-1])
        elif tag == "textarea":
            self._textarea, self._written = found.get("name"), ""
        elif tag == "select":
            self._select = found.get("name")
        elif tag == "option" and self._select and "selected" in found:
            self._send(self._select, found.get("value", ""))
        elif tag == "input" and "disabled" not in found and "name" in found:
            kind = found.get("type", "text")
            if kind in {"checkbox", "radio"}:
                if "checked" in found:
                    self._send(found["name"], found.get("value", "on"))
            elif kind not in {"submit", "button", "file"}:
                self._send(found["name"], found.get("value", ""))
        if tag in {"input", "option"}:
            self.text += f" {found.get('value', '')} "

    def handle_endtag(self, tag: str) -> None:
        if tag == self._raw:
            self._raw = ""
        elif tag == "form" and self._open:
            self._open.pop()
        elif tag == "select":
            self._select = None
        elif tag == "textarea" and self._textarea:
            # A browser drops the first line break and sends the others as CR LF.
            self._send(self._textarea, self._written.removeprefix("\n").replace("\n", "\r\n"))
            self._textarea = None

    def handle_data(self, data: str) -> None:
        if self._raw:
            self.scripts += data
            return
        self.text += data
        self._written += data

    def _send(self, name: str, value: str) -> None:
        if self._open:
            self._open[-1].data[name] = value
