"""Pure builders of the objects that the operator creates: plain dicts, as the API server takes them."""
