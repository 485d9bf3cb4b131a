#!/bin/sh
# Lets programs find the library that was just installed, where that can be done.
if [ -z "${DESTDIR:-}" ] && [ "$(id -u)" -eq 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi
