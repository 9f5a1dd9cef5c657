"""What a package offers, read off its list of public names."""

__all__ = ["excused_without_rows", "public"]


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


def excused_without_rows(estimator):
    """Return the check of tables without rows where the number of rows is private."""
    if getattr(estimator, "neighbors", None) != "add_or_remove_one":
        return {}
    reason = "to refuse a table without rows would tell that there are none"
    return {"check_estimators_empty_data_messages": reason}
