/** What was kept from the last visit; a browser or a sandbox may forbid to keep anything. */
export function remembered(name) {
  try {
    return JSON.parse(localStorage.getItem(`regard-${name}`));
  } catch {
    return null;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(`regard-${name}`, JSON.stringify(value));
  } catch {
    // Then it holds until the page is closed.
  }
}
