#!/usr/bin/env bash
# Ray with what Ray Serve needs, for the test of deploy/ray: half a gigabyte.
exec "$(dirname "$0")/python.sh" ray 'ray[serve]==2.60.0'
