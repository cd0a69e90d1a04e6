"""The local driver: the same plan with processes instead of pods, files instead of ConfigMaps."""
