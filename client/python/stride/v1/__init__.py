"""The messages and stubs of the contract: `array_pb2`, `compute_service_pb2_grpc` and their siblings, made at import from its descriptors.

No generated code: that of one protobuf runs on two of its major versions at most, this on every one from 5 on. `contract.binpb` is written by
`ci/check-proto --update` from proto/; a copy of this package builds without that folder."""

from stride.v1 import _contract

_contract.load(__name__)
