"""The product's addresses, and the least that a Django view can be."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from config.urls import urlpatterns as product
from factsheets.models import Publication

_bytes: list[bytes] = []


def bare(request: HttpRequest) -> HttpResponse:
    """The bytes of the live sheet, read once, in a view without anything else."""
    if not _bytes:
        _bytes.append(bytes(Publication.objects.get(number=1).body))
    return HttpResponse(_bytes[0], content_type="application/json")


def bare_304(request: HttpRequest) -> HttpResponse:
    """Not modified, without a look at anything."""
    return HttpResponse(status=304)


# The product's own first: nothing of the measuring may stand in its way.
urlpatterns = [product[0], path("bare/", bare), path("bare-304/", bare_304), *product[1:]]
