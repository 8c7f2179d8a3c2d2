/** The language and the theme that the reader chose, now or on an earlier visit. */
import { choices } from "./controls.js";
import { drawFor } from "./colours.js";
import { said } from "./elements.js";
import { remember, remembered } from "./memory.js";

const LANGUAGES = [["zh", "中文", "zh-CN"], ["en", "English", "en"]];
const THEMES = ["auto", "light", "dark"];

/** `changed` is called, with the reader, whenever there is something new to show. */
export function readerOf(given, changed) {
  const own = given || (/^zh/i.test(navigator.language) ? "zh" : "en");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const reader = {
    language: remembered("language") ?? own,
    theme: remembered("theme") ?? "auto",
    get tag() {
      return reader.language === "zh" ? "zh-CN" : "en";
    },
    get seen() {
      return reader.theme === "auto" ? (dark.matches ? "dark" : "light") : reader.theme;
    },
    /** The two choices; the document itself is told, too. */
    controls() {
      document.documentElement.lang = reader.tag;
      document.documentElement.dataset.theme = reader.theme;
      drawFor(reader.seen);
      const change = (name) => (value) => {
        remember(name, value);
        reader[name] = value;
        changed();
      };
      return [
        choices("language", said("language"), LANGUAGES, reader.language, change("language")),
        choices("theme", said("theme"), THEMES.map((one) => [one, said(`theme_${one}`)]),
          reader.theme, change("theme")),
      ];
    },
  };
  dark.addEventListener("change", changed);
  return reader;
}
