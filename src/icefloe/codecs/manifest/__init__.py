"""Manifests and manifest lists of every version as entry columns (spec: Manifests, Manifest Lists; V4 proposal)."""
