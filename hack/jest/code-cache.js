// Jest compiles every module anew for each suite. With this file a process parses a module once, and later suites load it from V8's code cache.
// Each suite still evaluates its own copy of each module.
import vm from 'node:vm';

/** By kind and file: the text, and V8's code cache of it. A changed text is compiled anew: V8 itself compares only the length. */
const caches = new Map();
const { SourceTextModule, compileFunction } = vm;

vm.SourceTextModule = new Proxy(SourceTextModule, {
  construct(Module, [code, options]) {
    const key = `module ${options.identifier}`;
    const cached = caches.get(key);
    if (cached?.code === code) {
      try {
        return new Module(code, { ...options, cachedData: cached.cachedData });
      } catch (error) {
        // V8 refuses the cache once a suite has changed V8's flags.
        if (error.code !== 'ERR_VM_MODULE_CACHED_DATA_REJECTED') throw error;
      }
    }
    const module = new Module(code, options);
    // Node creates no cache of a module that was evaluated.
    caches.set(key, { code, cachedData: module.createCachedData() });
    return module;
  },
});

vm.compileFunction = (code, parameters, options) => {
  const key = `function ${options.filename}`;
  const cached = caches.get(key);
  if (cached?.code === code) return compileFunction(code, parameters, { ...options, cachedData: cached.cachedData });
  const compiled = compileFunction(code, parameters, { ...options, produceCachedData: true });
  caches.set(key, { code, cachedData: compiled.cachedData });
  return compiled;
};
