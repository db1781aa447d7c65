"""RayServices as the runtime sees them."""

import msgspec

from raybus.runtime.controller import Controller
from raybus.serve_ctl.decide import ServeKnobs, ServeView, decide, gather


def controller() -> Controller[ServeView, ServeKnobs]:
    """The controller `serve`."""
    decoders = {"rayservice": msgspec.json.Decoder(ServeView).decode}
    return Controller(name="serve", decoders=decoders, gather=gather, decide=decide, knobs=ServeKnobs())
