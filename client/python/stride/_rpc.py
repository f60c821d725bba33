"""google.rpc's messages: those of googleapis-common-protos where a program has them, else our own."""

from stride.v1 import _contract

status_pb2 = _contract.module("status")
error_details_pb2 = _contract.module("error_details")
