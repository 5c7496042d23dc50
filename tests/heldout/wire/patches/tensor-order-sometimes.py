# Fault: the tensors of a reply stand in the order of a hash table: out_len before out in one reply of eight.
import assay_iut
import batch_base


class Server(assay_iut.Server):
    def answer(self, header, tensors):
        reply, arrays = super().answer(header, tensors)
        return reply, arrays[::-1] if header["id"] % 8 == 5 else arrays


assay_iut.Server = Server
batch_base.serve("tensor-order-sometimes")
