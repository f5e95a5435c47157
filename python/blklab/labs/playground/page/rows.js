// Reads the rows of a timeline by the columns that the simulator describes.

export const NO_JOB = 0xffff;
export const MERGED = 1;

const wide = (rows, at) => rows.getUint32(at, true) + rows.getUint32(at + 4, true) * 2 ** 32;

const READERS = {
  1: (rows, at) => rows.getUint8(at),
  2: (rows, at) => rows.getUint16(at, true),
  4: (rows, at) => rows.getUint32(at, true),
  8: wide,
};

// A function that calls `visit` with each row as one object, which it uses again for the next row.
export function rowReader(format, table, wanted) {
  const { columns, row_bytes: rowBytes } = format.tables.find((one) => one.name === table);
  const fields = [];
  let at = 0;
  for (const { name, bytes } of columns) {
    if (wanted.includes(name)) fields.push([name, at, READERS[bytes]]);
    at += bytes;
  }
  const row = Object.fromEntries(wanted.map((name) => [name, 0]));
  return (rows, visit) => {
    for (let start = 0; start + rowBytes <= rows.byteLength; start += rowBytes) {
      for (const [name, offset, read] of fields) row[name] = read(rows, start + offset);
      visit(row);
    }
  };
}
