#!/usr/bin/env bash
# How a test of a GPU ends where there is none, one that does not open, and one: look_test.sh LOOK_TEST
set -u

# ends DEVICE CODE TEXT [ARGUMENT]
ends() {
    local said code
    said=$(DEVICE=$1 "$look" ${4:+"$4"})
    code=$?
    [ "$code $said" = "$2 $3" ] && return
    echo "device $1 ${4:-}: $code, \"$said\"; not $2, \"$3\""
    exit 1
}

look=$1
ends none 77 'not run: no GPU (why)'
ends none 77 'not run: no GPU (why)' --device
ends broken 1 'there is a GPU, but it cannot be used (why)'
ends there 0 'device: stand-in' --device
ends there 3 'device: stand-in'
echo "as expected"
