/** What is shown, as files to keep. */
import { element } from "./elements.js";

export function saveFile(name, kind, text) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: kind })),
    download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Rows for a spreadsheet, which knows UTF-8 by the mark at the beginning. */
export function saveRows(name, rows) {
  const quoted = (value) => {
    // A cell that begins like a formula would be run as one.
    const text = String(value).replace(/^(?=[=+@\t\r]|-\D)/, "'");
    return `"${text.replaceAll('"', '""')}"`;
  };
  const lines = rows.map((row) => `${row.map(quoted).join(",")}\r\n`);
  saveFile(name, "text/csv", `\ufeff${lines.join("")}`);
}
