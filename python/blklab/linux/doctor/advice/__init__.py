"""Settings of a machine that do not do what they seem to: each check finds nothing where all is well."""
