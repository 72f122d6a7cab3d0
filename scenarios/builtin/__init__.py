"""The scenario files that come with flmarket, one TOML file each."""
