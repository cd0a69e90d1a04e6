"""What all drivers of one operator share."""

from __future__ import annotations

from dataclasses import dataclass

from goodput.operator.cluster.api import Api
from goodput.operator.cluster.cache import Cache
from goodput.operator.cluster.settings import Images
from goodput.operator.metrics import Metrics


@dataclass(frozen=True)
class Kit:
    """The API server, what was seen of it, the images, and the operator's metrics."""

    api: Api
    cache: Cache
    images: Images
    metrics: Metrics
