"""What a code object loads, so that two of them can be compared."""

import struct

# SHF_ALLOC; SHT_PROGBITS, SHT_NOTE and SHT_NOBITS.
ALLOCATED, PROGRAM, NOTES, ZEROS = 2, 1, 7, 8
# Made by linkers for their own purposes.
PADDING = ".relro_padding"


def loaded_sections(data):
    """Address and bytes of each section that holds code, data, zeros or metadata, by name. What holds places, which each linker
    chooses, is left out, and so is what is empty."""
    start, size, count, names = struct.unpack_from("<Q", data, 0x28)[0], *struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, start + size * index) for index in range(count)]

    def name(header):
        begin = headers[names][4] + header[0]
        return data[begin : data.index(b"\0", begin)].decode()

    def content(header):
        _, kind, _, address, offset, length = header
        return address, bytes(length) if kind == ZEROS else data[offset:][:length]

    taken = {name(h): content(h) for h in headers if h[1] in (PROGRAM, NOTES, ZEROS) and h[2] & ALLOCATED and h[5]}
    taken.pop(PADDING, None)
    return taken


def differences(one, other):
    """What two objects load differently, in words. Sections lie at places that each linker chooses, so a word of theirs may differ
    by as much as the distance between two sections does."""
    one, other = loaded_sections(one), loaded_sections(other)
    if one.keys() != other.keys():
        return [f"sections {sorted(one)} and {sorted(other)}"]
    moved = {name: other[name][0] - one[name][0] for name in one}
    found = []
    for name, (_, bytes_of_it) in one.items():
        others = other[name][1]
        if len(bytes_of_it) != len(others):
            found.append(f"{name}: {len(bytes_of_it)} and {len(others)} bytes")
            continue
        distances = {(shift - moved[name]) % 2**32 for shift in moved.values()}
        for at in range(0, len(others), 4) if bytes_of_it != others else []:
            left, right = (int.from_bytes(of[at : at + 4], "little") for of in (bytes_of_it, others))
            if left != right and (right - left) % 2**32 not in distances:
                found.append(f"{name} at {at:#x}: {left:#x} and {right:#x}")
    return found
