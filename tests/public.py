"""What a package offers, read off its list of public names."""

__all__ = ["public"]


def public(module, *methods):
    """Return the public classes with these methods, without protocols."""
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        name
        for name, kind in found.items()
        if isinstance(kind, type)
        and not getattr(kind, "_is_protocol", False)
        and all(hasattr(kind, method) for method in methods)
    }
