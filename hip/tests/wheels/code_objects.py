"""What a code object loads, so that two of them can be compared."""

import struct

# SHF_ALLOC; SHT_PROGBITS and SHT_NOTE.
ALLOCATED, PROGRAM, NOTES = 2, 1, 7


def loaded_sections(data):
    """The bytes of each section that holds code, data or metadata. What holds places, which each linker chooses, is left out, and the
    offset from a descriptor to the code of its kernel is replaced by the offset of the code in its section."""
    start, size, count, names = struct.unpack_from("<Q", data, 0x28)[0], *struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, start + size * index) for index in range(count)]

    def name(header):
        begin = headers[names][4] + header[0]
        return data[begin : data.index(b"\0", begin)].decode()

    taken = {name(header): header for header in headers if header[1] in (PROGRAM, NOTES) and header[2] & ALLOCATED}
    sections = {name: bytearray(data[header[4] :][: header[5]]) for name, header in taken.items()}
    rodata, code = taken[".rodata"][3], taken[".text"][3]
    for descriptor in range(0, len(sections[".rodata"]), 64):
        entry = struct.unpack_from("<q", sections[".rodata"], descriptor + 16)[0]
        struct.pack_into("<q", sections[".rodata"], descriptor + 16, rodata + descriptor + entry - code)
    return sections
