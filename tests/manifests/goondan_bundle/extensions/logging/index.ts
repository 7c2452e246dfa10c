export function register(api) {
  api.pipeline.register("toolCall", async (ctx) => {
    const result = await ctx.next();
    api.logger.info(`${ctx.toolName}: ${result.status}`);
    return result;
  });
}
